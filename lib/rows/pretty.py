"""A decision for people to read: the table as the player sees it, the hand, what is asked, what was legal and done."""

from ..store.wording import count


def text(row):
    """The lines of one described row, as notation.describe makes it, with its link."""
    cells = [(player["who"], player["wind"], f"{player['score']:,}", "riichi" * player["riichi"], player["river"],
              "; ".join(player["melds"])) for player in row["players"]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join([
        f"{row['round']}, honba {row['honba']}, {count(row['sticks'], 'stick')}, {count(row['left'], 'tile')} left,"
        f" indicators {row['indicators']}",
        *("  ".join(cell.ljust(n) for cell, n in zip(line, widths, strict=True) if n).rstrip() for line in cells),
        f"hand   {row['tiles']}" + (f"  drawn {row['drawn']}" if row["drawn"] else ""),
        f"asked  {row['asked']}" + (f", {row['on']}" if row["on"] else ""),
        f"legal  {', '.join(row['legal'])}",
        f"done   {row['label']}",
        f"ended  {row['hand_delta']:+,} in this hand; place {row['final_rank']} with {row['final_score']:,}",
        f"link   {row['link']}  hand {row['hand']} of the game, decision {row['step']} of the hand, from 0",
    ])
