import random

import textkit

from sns_gate import benchmark


def words(count):
    letters = "abcdefghij"
    return ["".join(random.choices(letters, k=random.randint(2, 9))) for _ in range(count)]


@benchmark(params={"kib": [64]})
def checksum(kib):
    data = random.randbytes(kib * 1024)
    return lambda: textkit.checksum(data)


@benchmark(params={"count": [500, 4000]})
def count_words(count):
    text = words(count)
    return lambda: textkit.count_words(text)


@benchmark(params={"count": [2000]})
def squeeze(count):
    lines = [f"  {word}\t{word} " for word in words(count)]
    return lambda: textkit.squeeze(lines)


@benchmark(params={"count": [1000]})
def longest(count):
    text = words(count)
    return lambda: textkit.longest(text, 10)


@benchmark(params={"count": [1000]})
def initials(count):
    text = words(count)
    return lambda: textkit.initials(text)
