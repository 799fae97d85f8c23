"""--help as a manual page: the sections of a script's docstring, and what argparse knows of its options."""

import argparse
import re
import shutil
import sys
import textwrap

_INDENT = 4 * " "


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose `description` is a docstring: what the script does, in one paragraph that can follow its
    name; one transcript, indented; more paragraphs; and from "Exit status:" on, these."""

    def format_help(self):
        width = min(shutil.get_terminal_size().columns, 100)
        name, example, more, statuses = sections(self.description or script_doc())
        options = argparse.HelpFormatter(self.prog, max_help_position=22, width=width - 4)
        for group in self._action_groups:
            options.add_arguments(group._group_actions)
        usage = re.sub(r"\[[^][]*\]", lambda option: option[0].replace(" ", "\0"), self.format_usage())
        synopsis = textwrap.fill(" ".join(usage.split()[1:]), width, initial_indent=_INDENT,
                                 subsequent_indent=2 * _INDENT, break_on_hyphens=False)
        parts = {
            "NAME": _fill(f"{self.prog} - {name[:1].lower()}{name[1:].removesuffix('.')}", width),
            "SYNOPSIS": synopsis.replace("\0", " "),
            "DESCRIPTION": "\n\n".join(_fill(paragraph, width) for paragraph in more),
            "OPTIONS": textwrap.indent(options.format_help().rstrip(), _INDENT),
            "EXIT STATUS": _fill(statuses, width),
            "EXAMPLE": example,
        }
        return "\n\n".join(f"{heading}\n{text}" for heading, text in parts.items() if text) + "\n"


def script_doc():
    """The docstring of the script that runs; `python -OO` throws it away, so then it is read from the source."""
    main = sys.modules["__main__"]
    if main.__doc__:
        return main.__doc__
    import ast  # few need it

    with open(main.__file__, encoding="utf-8") as f:
        return ast.get_docstring(ast.parse(f.read()), clean=False)


def sections(doc):
    """(first paragraph, transcript, list of the other paragraphs, exit statuses) of a docstring."""
    body, _, statuses = doc.strip().partition("Exit status:")
    paragraphs = [part.strip("\n") for part in re.split(r"\n\s*\n", body) if part.strip()]
    examples = [part for part in paragraphs if part.startswith(_INDENT)]
    first, *more = [part for part in paragraphs if part not in examples]
    return " ".join(first.split()), "\n\n".join(examples), more, statuses


def _fill(text, width):
    return textwrap.fill(" ".join(text.split()), width, initial_indent=_INDENT, subsequent_indent=_INDENT,
                         break_on_hyphens=False, break_long_words=False)
