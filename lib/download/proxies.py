"""The proxy that the environment sets for an address, and what of a failed request is its fault."""

import os
import re

from requests import exceptions, utils

GATEWAY = 407, 502, 504  # HTTP statuses by which a proxy says that it has not asked the server


def of(url):
    """What to call the proxy that a request to `url` goes through, without its password; None if it goes through none.
    """
    proxy = utils.select_proxy(url, utils.get_environ_proxies(url))
    if not proxy:
        return None
    names = [name for name, value in os.environ.items() if value == proxy and name.lower().endswith("_proxy")]
    plain = ascii(re.sub(r"^([\w+.-]+://)?.*@", r"\1", proxy))[1:-1][:100]
    return f"the proxy {plain}" + (f" (from {names[0]})" if names else "")


def why_unusable(error):
    """What keeps a proxy from ever being used, of what a request through it raised; None if it is not that."""
    if isinstance(error, exceptions.InvalidSchema):
        return "SOCKS needs the package PySocks, which is not installed"
    if isinstance(error, exceptions.InvalidURL):
        return "this is not the address of a proxy"
    return None


def answer(status):
    """A proxy's answer in words."""
    return f"it answers HTTP {status}" + (", wants a user name and a password" if status == 407 else "")


def refusal(error):
    """The HTTP status by which a proxy refused to connect to the server, of what the request raised; None if it did
    not."""
    found = re.search(r"Tunnel connection failed: ([0-9]{3})", str(error))
    return found and int(found[1])
