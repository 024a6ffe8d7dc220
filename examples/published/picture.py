# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws the answers to what-if questions about the steps: docs/predicted.svg, which predict.py writes and checks."""
import math

WIDTH, HEIGHT, LEFT, TOP, GAP = 330, 180, 62, 40, 96
COLOURS = ("#1f6fb4", "#c4501b", "#3a8a3a", "#7a4fa3")


def number(value):
    return f"{value:.4g}" if value < 10000 else f"{value / 1000:.4g}k"


class Chart:
    """Lines of points (x, y) and dots, over a logarithmic x and a y from 0."""

    def __init__(self, title, x_words, y_words, xs, lines, dots=()):
        self.title, self.x_words, self.y_words, self.xs, self.lines, self.dots = title, x_words, y_words, xs, lines, dots
        self.top = 1.1 * max(y for _, points in (*lines, *dots) for _, y in points)

    def at(self, x, y):
        low, high = math.log(self.xs[0]), math.log(self.xs[-1])
        return WIDTH * (math.log(x) - low) / (high - low), HEIGHT * (1 - y / self.top)

    def text(self, x, y, words, anchor="middle", more=""):
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{words}</text>'

    def axes(self):
        out = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#888"/>',
               self.text(0, -10, self.title, "start", ' font-weight="bold"'),
               self.text(WIDTH / 2, HEIGHT + 34, self.x_words),
               self.text(-HEIGHT / 2, -46, self.y_words, "middle", ' transform="rotate(-90)"')]
        for x in self.xs:
            out.append(self.text(self.at(x, 0)[0], HEIGHT + 16, number(x)))
        step = 10 ** math.floor(math.log10(self.top))
        step *= next(each for each in (1, 0.5, 0.25) if self.top / (each * step) >= 3)
        for k in range(int(self.top / step) + 1):
            y = self.at(self.xs[0], k * step)[1]
            out.append(f'<line x1="-4" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
            out.append(self.text(-7, y + 4, number(k * step), "end"))
        return out

    def svg(self, x, y):
        out = [f'<g transform="translate({x},{y})">', *self.axes()]
        for k, (name, points) in enumerate(self.lines):
            places = " ".join("{:.1f},{:.1f}".format(*self.at(*each)) for each in points)
            out.append(f'<polyline points="{places}" fill="none" stroke="{COLOURS[k]}" stroke-width="2"/>')
            x, y = self.at(*points[-1])
            out.append(self.text(x - 4, y + (16 if k else -6), name, "end", f' fill="{COLOURS[k]}"'))
        for k, (_, points) in enumerate(self.dots):
            for each in points:
                out.append('<circle cx="{:.1f}" cy="{:.1f}" r="4" fill="none" stroke="{}"/>'.format(*self.at(*each), COLOURS[k]))
        return "\n".join(out + ["</g>"])


def draw(charts):
    """The charts, two beside each other."""
    rows = (len(charts) + 1) // 2
    width, height = 2 * (WIDTH + GAP), rows * (HEIGHT + GAP)
    body = "\n".join(each.svg(LEFT + k % 2 * (WIDTH + GAP), TOP + k // 2 * (HEIGHT + GAP)) for k, each in enumerate(charts))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            f'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n')
