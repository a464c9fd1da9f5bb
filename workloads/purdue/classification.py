"""Classification (PUMA) for Hadoop Streaming: each movie to the given movie that is most like it.

Input: ``movie:user_rating,user_rating,...``; ``centres.txt`` beside the program: lines of the same form, one a class.
Alike is the cosine of two movies' ratings by user; of equally alike centres the first; a movie that shares no user with
any goes to class 0. map: ``class <tab> movie``; reduce: the same, in order.
Plain Python on bytes, nothing but the standard library.
"""

import sys


def ratings(line):
    movie, _, pairs = line.strip().partition(b":")
    found = []
    for pair in pairs.split(b",") if pairs else []:
        user, _, rating = pair.partition(b"_")
        found.append((user, int(rating)))
    return movie, found


def read_centres(lines):
    """(ratings by user, squared length) of each centre."""
    centres = []
    for line in lines:
        of_user = {}
        pairs = ratings(line)[1]
        for user, rating in pairs:
            of_user[user] = of_user.get(user, 0) + rating
        centres.append((of_user, sum(rating * rating for _, rating in pairs)))
    return centres


def nearest(pairs, centres):
    best, best_dot, best_square = 0, 0, 1
    for number, (of_user, square) in enumerate(centres):
        dot = sum(rating * of_user.get(user, 0) for user, rating in pairs)
        # dot / sqrt(square) compared by squares, in whole numbers: every machine decides alike.
        if dot * dot * best_square > best_dot * best_dot * square:
            best, best_dot, best_square = number, dot, square
    return best


def map_lines(lines, write, centres_file="centres.txt"):
    with open(centres_file, "rb") as file:
        centres = read_centres(file)
    for line in lines:
        if line.strip():
            movie, pairs = ratings(line)
            write(b"%d\t%s\n" % (nearest(pairs, centres), movie))


def reduce_lines(lines, write):
    for line in lines:
        write(line)


if __name__ == "__main__":
    {"map": map_lines, "reduce": reduce_lines}[sys.argv[1]](sys.stdin.buffer, sys.stdout.buffer.write)
