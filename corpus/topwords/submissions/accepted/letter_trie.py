# reads letter by letter into a trie and walks all of it for every board
import sys


class Node:
    __slots__ = ("children", "count", "word")

    def __init__(self, word):
        self.children = {}
        self.count = 0
        self.word = word


def best(root, k):
    found = []
    stack = [root]
    while stack:
        node = stack.pop()
        if node.count:
            found.append((-node.count, node.word))
        stack.extend(node.children.values())
    found.sort()
    return " ".join(f"{word}:{-count}" for count, word in found[:k]) or "-"


def main():
    total, k = map(int, input().split())
    root = Node("")
    for _ in range(total):
        line = input()
        if line == "#":
            print(best(root, k))
            continue
        node = root
        for letter in line.lower() + " ":
            if "a" <= letter <= "z":
                if letter not in node.children:
                    node.children[letter] = Node(node.word + letter)
                node = node.children[letter]
            elif node is not root:
                node.count += 1
                node = root


main()
