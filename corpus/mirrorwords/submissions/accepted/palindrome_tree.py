# palindromic tree: counts the suffix palindromes of every prefix
import sys


class Node:
    __slots__ = ("length", "link", "next", "depth")

    def __init__(self, length, link, depth):
        self.length = length
        self.link = link
        self.next = {}
        self.depth = depth


def solve(s):
    imaginary = Node(-1, None, 0)
    empty = Node(0, imaginary, 0)
    imaginary.link = imaginary
    last = empty
    total = best = 0

    def suffix(node, i):
        while True:
            j = i - node.length - 1
            if j >= 0 and s[j] == s[i]:
                return node
            node = node.link

    for i, ch in enumerate(s):
        parent = suffix(last, i)
        node = parent.next.get(ch)
        if node is None:
            link = empty if parent is imaginary else suffix(parent.link, i).next[ch]
            node = Node(parent.length + 2, link, link.depth + 1)
            parent.next[ch] = node
        last = node
        total += node.depth
        best = max(best, node.length)
    return total, best


for line in sys.stdin.readlines()[1:]:
    print(*solve(line.strip()))
