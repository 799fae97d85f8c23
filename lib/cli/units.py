"""Bytes and seconds as people read them."""


def size(n):
    """A number of bytes as text, three digits at least: 0 B, 14.2 MB, 520 MB."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if n < 999.5 or unit == "TB":
            return f"{n:.0f} {unit}" if unit == "B" or n >= 99.95 else f"{n:.1f} {unit}"
        n /= 1000


def duration(seconds):
    """A number of seconds as text: 4 d 07 h, 3 h 20 min, 12 min, 40 s."""
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if days:
        return f"{days} d {hours % 24:02d} h"
    if hours:
        return f"{hours} h {minutes % 60:02d} min"
    return f"{minutes} min" if minutes else f"{seconds} s"
