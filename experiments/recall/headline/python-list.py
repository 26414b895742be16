# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A list of 100,000 numbers, made in another order than they lie in it, is added up by the interpreter: its evaluation
# loop reads the objects.
#
#: names = ["_PyEval_EvalFrameDefault", "list_iter", "listiter_next", "PyNumber_InPlaceAdd", "PyNumber_Add", "long_add",
#:          "_PyLong_Add", "add_up"]
#: size = 5
import sys

COUNT = 100003


def add_up(numbers):
    total = 0
    for n in numbers:
        total += n
    return total


made = list(range(10**6, 10**6 + COUNT))
numbers = [made[i * 7919 % COUNT] for i in range(COUNT)]
print(sum(add_up(numbers) for _ in range(int(sys.argv[1]))))
