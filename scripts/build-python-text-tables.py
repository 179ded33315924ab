"""Writes the tables behind shared/benchmarks/return/python-text.ts and the fixture that its test reads.

Usage: python3 scripts/build-python-text-tables.py
Both files hold facts of the running Python's own str and re; nothing of the TypeScript side is used.
"""

import hashlib
import json
import pathlib
import re
import sys
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLES = ROOT / "shared/benchmarks/return/python-text-tables.ts"
FIXTURE = ROOT / "test/fixtures/return/python-text.json"
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def mapping(change):
    """Single code points as runs `start,count,step,shift`, longer results as `from=to.to`."""
    single, several = {}, {}
    for c in CODE_POINTS:
        to = change(chr(c))
        if to != chr(c):
            if len(to) == 1:
                single[c] = ord(to)
            else:
                several[c] = [ord(x) for x in to]
    runs, left = [], dict(single)
    while left:
        start = min(left)
        shift = left[start] - start
        best = (1, 1)
        for step in (1, 2):
            count = 1
            while left.get(start + count * step) == start + count * step + shift:
                count += 1
            best = max(best, (count, step))
        count, step = best
        for k in range(count):
            del left[start + k * step]
        runs.append(f"{start:x},{count:x},{step},{'-' if shift < 0 else ''}{abs(shift):x}")
    return runs, [f"{c:x}={'.'.join(f'{x:x}' for x in to)}" for c, to in several.items()]


def ranges(member):
    """`gap,length` of every range of members, the gap counted from the end of the one before."""
    out, end, c = [], 0, 0
    while c < 0x110000:
        if member(chr(c)):
            start = c
            while c < 0x110000 and member(chr(c)):
                c += 1
            out.append(f"{start - end:x},{c - start:x}")
            end = c
        else:
            c += 1
    return out


def lines(name, parts):
    rows, row = [], ""
    for part in parts:
        piece = part + ";"
        if len(row) + len(piece) > 100:
            rows.append(row)
            row = ""
        row += piece
    rows.append(row)
    body = "".join(f"  '{row}',\n" for row in rows)
    return f"export const {name} = [\n{body}].join('');\n"


def digest(value_of):
    sha = hashlib.sha256()
    for c in CODE_POINTS:
        sha.update(f"{c:x}:{value_of(chr(c))}\n".encode())
    return sha.hexdigest()


word = re.compile(r"\w")
space = re.compile(r"\s")
casefold_runs, casefold_several = mapping(str.casefold)
upper_runs, upper_several = mapping(str.upper)

TABLES.write_text(
    "// Written by scripts/build-python-text-tables.py; numbers are hexadecimal code points.\n\n"
    f"/** Unicode version of the Python (3.{sys.version_info.minor}) that these tables describe. */\n"
    f"export const unicodeVersion = '{unicodedata.unidata_version}';\n\n"
    "/** `gap,length;` of every range of characters that Python's `\\w` matches, less the underscore. */\n"
    + lines("alphanumericRanges", ranges(str.isalnum))
    + "\n/** `start,count,step,shift;` of characters that fold to one other character. */\n"
    + lines("casefoldRuns", casefold_runs)
    + "\n/** `from=to.to;` of characters that fold to several. */\n"
    + lines("casefoldExpansions", casefold_several)
    + "\n/** As `casefoldRuns`, for `str.upper`. */\n"
    + lines("upperRuns", upper_runs)
    + "\n/** As `casefoldExpansions`, for `str.upper`. */\n"
    + lines("upperExpansions", upper_several)
)

samples = ["Straße", "İstanbul", "ΟΔΥΣΣΕΥΣ ς", "ﬁﬃﬆ", "ŉ ǰ ΐ", "Ꭰꭰ ᏸ", "K Å ſ", "ß ẞ", "ᾳ ᾼ", "օև", "𐐀𐐨", "Ǆǅǆ", "a\u0345"]
letters = "abcdefghijklmnopqrstuvwxyz"
FIXTURE.parent.mkdir(parents=True, exist_ok=True)
FIXTURE.write_text(
    json.dumps(
        {
            "python": sys.version.split()[0],
            "unicode": unicodedata.unidata_version,
            "sha256": {
                "casefold": digest(str.casefold),
                "upper": digest(str.upper),
                "word": digest(lambda x: int(word.fullmatch(x) is not None)),
                "space": digest(lambda x: int(space.fullmatch(x) is not None)),
                "strip": digest(lambda x: int(x.strip() == "")),
            },
            "ignoringCase": {
                x: "".join(chr(c) for c in CODE_POINTS if re.fullmatch(x, chr(c), re.I)) for x in letters
            },
            "samples": [[x, x.casefold(), x.upper()] for x in samples],
        },
        indent=1,
    )
    + "\n"
)
