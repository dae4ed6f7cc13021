"""Small pieces of text work, in the standard library alone."""

import zlib


def checksum(data):
    """CRC of all blocks of some bytes."""
    value = 0
    for start in range(0, len(data), 512):
        value = zlib.crc32(data[start : start + 512], value)
    return value


def count_words(words):
    """How often each word occurs."""
    counts = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return counts


def squeeze(lines):
    """Lines without the white space around them, and without empty ones."""
    kept = []
    for line in lines:
        text = line.strip()
        if text:
            kept.append(text)
    return kept


def longest(words, count):
    """The longest words, longest first."""
    ordered = list(words)
    for _ in range(3):
        ordered = sorted(ordered, key=lambda word: (-len(word), word))
    return ordered[:count]


def initials(words):
    """The first letters, as capitals."""
    return [word[:1].upper() for word in words if word]
