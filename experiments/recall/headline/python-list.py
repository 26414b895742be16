# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A list of 200,000 numbers in random order is added up by the interpreter: its evaluation loop reads the objects.
#
#: names = ["_PyEval_EvalFrameDefault", "list_iter", "listiter_next", "PyNumber_InPlaceAdd", "PyNumber_Add", "long_add",
#:          "_PyLong_Add", "add_up"]
#: size = 3
import random, sys


def add_up(numbers):
    total = 0
    for n in numbers:
        total += n
    return total


numbers = list(range(10**6, 10**6 + 200000))
random.Random(1).shuffle(numbers)
print(sum(add_up(numbers) for _ in range(int(sys.argv[1]))))
