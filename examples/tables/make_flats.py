# SPDX-License-Identifier: BSD-3-Clause
"""make_flats.py: print flats.csv, a synthetic table of flats and their rents, with text, numbers and missing values.

The rent is a smooth function of the columns times exp(0.06 z) with standard normal z, so no model can predict it exactly.
"""
import csv
import math
import random
import sys

# check-words: allow spelling -our (the name of a place)
DISTRICTS = {"Old Town": 1.35, "Harbour": 1.2, "Hill": 1.1, "Mill": 0.95, "Station": 0.9, "East": 0.8}
CONDITIONS = {"new": 1.15, "renovated": 1.08, "good": 1.0, "worn": 0.85}
HEATING = {"district": 1.0, "gas": 0.98, "electric": 0.93}
ROWS, EMPTY = 1000, 0.02


def flat(draw):
    area = round(min(max(draw.lognormvariate(4.2, 0.4), 18), 240), 1)
    rooms = max(1, round(area / 24 + draw.gauss(0, 0.6)))
    floor, built = draw.randint(0, 8), draw.randint(1890, 2024)
    distance = round(draw.uniform(0.2, 12), 2)
    district, condition, heating = (draw.choice(list(names)) for names in (DISTRICTS, CONDITIONS, HEATING))
    lift = draw.choice(["yes", "no"])
    square = 9 + 5 * math.exp(-distance / 4) + 1.5 * ((built - 1960) / 60) ** 2  # base rent per square meter
    climb = 1 - 0.03 * floor if lift == "no" else 1 + 0.01 * floor
    rent = square * area**0.9 * climb * DISTRICTS[district] * CONDITIONS[condition] * HEATING[heating]
    rent = round(rent * (1 + 0.02 * rooms) * math.exp(draw.gauss(0, 0.06)))
    cells = [area, rooms, floor, built, distance, district, condition, heating, lift]
    return ["" if draw.random() < EMPTY else cell for cell in cells] + [rent]


def main():
    draw, out = random.Random(7), csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["area", "rooms", "floor", "built", "distance", "district", "condition", "heating", "lift", "rent"])
    out.writerows(flat(draw) for _ in range(ROWS))


if __name__ == "__main__":
    main()
