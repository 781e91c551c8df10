"""Writes the small logs that the examples read, into `data/` of the current folder.

Each list below is one file of the log, and in these examples one batch.
"""

import slackwater as sw


def purchase(name: str, user: str, cents: int, at: str) -> dict[str, str | int]:
    """Return a purchase as a phone would send it."""
    return {"id": name, "user": user, "cents": cents, "placed_at": f"2026-03-01T{at}Z"}


def click(visitor: str, page: str, ms: int, at: str) -> dict[str, str | int]:
    """Return a click as a browser would send it."""
    return {"visitor": visitor, "page": page, "ms": ms, "at": f"2026-03-01T{at}Z"}


PURCHASES: list[list[dict[str, str | int] | str]] = [
    [purchase("a", "ada", 500, "12:00:05"), purchase("b", "bob", 900, "12:00:40")],
    [purchase("c", "ada", 250, "12:02:30")],
    [
        purchase("d", "ada", 100, "12:00:30"),  # was offline for two minutes
        '{"id": "e", "user": "bo',  # the network broke off
        '{"id": "f", "user": "eve", "cents": 700, "placed_at": "2126-01-01T00:00:00Z"}',  # a clock a century ahead
    ],
    [purchase("g", "cyd", 300, "12:20:00")],
    [purchase("h", "bob", 650, "12:01:10")],  # was on a plane
]

CLICKS: list[list[dict[str, str | int]]] = [
    [click("v1", "home", 80, "09:00:00"), click("v1", "shoes", 240, "09:04:00"), click("v2", "home", 95, "09:05:00")],
    [click("v1", "checkout", 310, "09:17:00"), click("v2", "health", 1, "09:18:00")],
    [click("v3", "home", 70, "09:40:00")],
    [click("v1", "cart", 120, "09:10:30")],  # late, and joins the two visits of v1
    [click("v3", "shoes", 200, "12:00:00")],
]

if __name__ == "__main__":
    for folder, files in (("data/purchases", PURCHASES), ("data/clicks", CLICKS)):
        with sw.LogWriter(folder) as log:
            for records in files:
                for record in records:
                    log.append(record)
                log.flush()
        print(f"wrote {folder}")
