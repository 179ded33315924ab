"""Writes test/fixtures/return/scoring.json: replies with the scores that the written rules give in Python.

Usage: python3 scripts/build-return-scoring-fixture.py
An implementation of return-protocol section 5 that shares nothing with the TypeScript one: it leans on
str.casefold, str.strip, str.upper, re and json themselves. The rows are drawn with a fixed seed.
"""

import hashlib
import json
import pathlib
import random
import re

FIXTURE = pathlib.Path(__file__).resolve().parent.parent / "test/fixtures/return/scoring.json"
rng = random.Random(20260930)

AT_START = re.compile(r"([A-D])(?:[.:)]|\Z)", re.IGNORECASE)
AFTER_WORD = re.compile(r"\b(?:answer|option|choice)\s*(?:is|:|=)?\s*\b([A-D])\b", re.IGNORECASE)
COLOUR = re.compile(r"\b(?:color|colour)\b", re.IGNORECASE)


def norm(text):
    return re.sub(r"[^a-z0-9]+", " ", text.casefold()).strip()


def score(interface, gold, aliases, choices, raw):
    if interface == "openqa":
        strict = norm(raw) in {norm(x) for x in dict.fromkeys([gold, *aliases])}
        return strict, strict
    if raw.strip().upper() == gold.upper():
        return True, True
    stripped = raw.strip()
    found = {m.group(1).upper() for m in [AT_START.match(stripped)] if m}
    found |= {m.group(1).upper() for m in AFTER_WORD.finditer(stripped)}
    if len(found) == 1:
        return False, found == {gold}
    said = norm(raw)
    hits = [i for i, x in enumerate(choices) if norm(x) and norm(x) in said]
    return False, len(hits) == 1 and hits[0] == "ABCD".index(gold)


def identity(question, gold, aliases, choices, interface, raw):
    parts = [question, gold, list(dict.fromkeys([gold, *aliases])), choices, interface, raw]
    if interface == "openqa" and COLOUR.search(question):
        parts.append("question_requested_color_granularity_v1")
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))


ITEMS = [
    ["mcq", "B", ["B"], ["salt", "flour", "garlic", "butter"]],
    ["mcq", "D", ["D"], ["red", "dark red", "Blau", "Weiß"]],
    ["mcq", "A", ["A"], ["no", "yes", "42", "İzmir"]],
    ["mcq", "C", ["C"], ["ﬁsh", "fisherman", "Kelvin", "…"]],
    ["mcq", "A", ["A"], ["日本", "café", "cafe", "a c"]],
    ["openqa", "four cloves", ["four", "4", "4 cloves"], []],
    ["openqa", "Straße", ["Strasse 9", "straße"], []],
    ["openqa", "ﬁre-ﬂy", ["K2", "İstanbul"], []],
    ["openqa", "café", ["naïve", "ſet"], []],
    ["openqa", "knit beanie", [], []],
    ["openqa", "日本", ["nihon"], []],
]
SPACES = ["", " ", "  ", "\t", "\n", "\r\n", "\x1c", "\x1f", "\x85", "\xa0", "\u1680", "\u2003", "\u2028", "\u202f", "\u3000", "\u200b", "\ufeff", "\u180e"]
EDGES = ["", "", " ", ".", ",", ":", ")", "(", "*", "_", "-", "'", "é", "\u0301", "²", "½", "ª", "٣", "Ⅳ", "中", "한", "𝐀", "𐐀", "😀", "\u200d", "\u203f", "ⓐ", "x", "1", "’"]
WORDS = ["answer", "Answer", "ANSWER", "anſwer", "option", "Option", "OPTİON", "optıon", "choice", "CHOICE", "choıce", "choİce", "answers", "reanswer", "Antwort", "réponse"]
BETWEEN = ["", "is", "Is", "IS", "iſ", "ıs", "İS", "İſ", ":", "=", "：", "is:", ": is", "-", "ist", "are"]
LETTERS = list("ABCDabcd") + ["E", "AB", "Ａ", "А", "Á", "ª", "I", "𝐁"]
LEAD = ["", "", "", "The ", "the correct ", "Final\n", "É", "_", "2", "\u0301", "*", "(", "我的"]
TAIL = ["", ".", " because a car moves.", ". Note that A is a common distractor.", " or option C", " choice: B", "\nAnswer = B", ")", ": salt", " garlic"]


def case(text):
    return "".join(rng.choice([x, x, x.upper(), x.lower(), x.swapcase()]) for x in text)


def reply_with_letter():
    pick = rng.choice
    return (pick(LEAD) + pick(EDGES) * rng.randrange(2) + pick(WORDS) + pick(SPACES) + pick(BETWEEN) + pick(SPACES)
            + pick(EDGES) * rng.randrange(2) + pick(LETTERS) + pick(EDGES) * rng.randrange(2) + pick(TAIL))


def bare_letter():
    pick = rng.choice
    return pick(SPACES) + pick(EDGES) * (rng.random() < 0.2) + pick(LETTERS) + pick(EDGES) + pick(SPACES) + pick(TAIL) * rng.randrange(2)


def text_of(answers):
    pick = rng.choice
    out = pick(SPACES) + pick(EDGES)
    for _ in range(pick([1, 1, 1, 2])):
        answer = pick(answers)
        for old, new in [("ss", "ß"), ("fi", "ﬁ"), ("fl", "ﬂ"), ("s", "ſ"), ("k", "K"), ("i", "İ"), ("i", "ı"), (" ", "\u00ad"), ("-", "—")]:
            if rng.random() < 0.12:
                answer = answer.replace(old, new)
        out += case(answer) + pick(EDGES) + pick(SPACES)
    return out


FIXED = ["", " ", "B", "b", " b \u3000", "B.", "B)", "B:", "(B)", "**B**", "ANSWER: $B$", "ANSWER: AB", "ANSWER: None of the above",
         "Don't know", "A, B and C", "The answer is B because a car moves.", "The answer is C because I computed it",
         "The answer is B. Note that A is a common distractor.", "Antwort: Antwort: C", "Answer: Let's think", "a notice",
         "Yes, a death notice", "B\n", "B\n\nbecause", "A .", "Answer is: B", "answerB", "answer isB", "answeris B", "option B choice B",
         "option B, choice C", "butter", "BUTTER!", "garlic and butter", "\\boxed{inf}", "½", "４", "4.", "four-cloves", "STRASSE", "strasse", "ß", "ẞ"]

rows = []
for index, (interface, gold, aliases, choices) in enumerate(ITEMS):
    makers = [lambda: text_of([gold, *aliases])]
    count = 160
    if interface == "mcq":
        makers = [reply_with_letter, reply_with_letter, bare_letter, lambda: text_of(choices)]
        count = 420
    for raw in dict.fromkeys(FIXED + [rng.choice(makers)() for _ in range(count)]):
        strict, rule = score(interface, gold, aliases, choices, raw)
        rows.append([index, raw, int(strict), int(rule)])

QUESTIONS = ["What color is it?", "What COLOUR is it?", "Which colors?", "co\u0130or", "a_color", "(colour)", "écolor", "\u0301color", "color²", "color\u0301",
             "Plain?", "quote \" back \\ slash / tab \t nl \n cr \r ff \f bs \b nul \0 esc \x1b us \x1f del \x7f nel \x85", "\u2028 \u2029 \ufeff é 中 😀", "lone \ud800 and \udfff"]
identities = []
for question in QUESTIONS:
    for interface in ("openqa", "mcq"):
        item = [question, "g", ["h", "g", "h"], ["x", "y\n"] if interface == "mcq" else [], interface, question[::-1]]
        text = identity(*item)
        try:
            key = hashlib.sha256(text.encode()).hexdigest()
        except UnicodeEncodeError:
            key = None
        identities.append([item, text, key])

FIXTURE.write_text(
    '{"items": %s,\n"rows": [\n%s\n],\n"identities": [\n%s\n]}\n'
    % (json.dumps(ITEMS), ",\n".join(map(json.dumps, rows)), ",\n".join(map(json.dumps, identities)))
)
print(len(rows), "rows", sum(r[2] for r in rows), "strict", sum(r[3] for r in rows), "by rule")
