# treap of node objects, split by value and merge; subtree sizes give the count
import random


class Node:
    __slots__ = ("value", "priority", "size", "left", "right")

    def __init__(self, value, priority):
        self.value = value
        self.priority = priority
        self.size = 1
        self.left = None
        self.right = None

    def update(self):
        self.size = 1
        if self.left is not None:
            self.size += self.left.size
        if self.right is not None:
            self.size += self.right.size
        return self


def split(node, value):
    """all values <= value, all values > value"""
    if node is None:
        return None, None
    if node.value <= value:
        node.right, rest = split(node.right, value)
        return node.update(), rest
    rest, node.left = split(node.left, value)
    return rest, node.update()


def join(low, high):
    if low is None:
        return high
    if high is None:
        return low
    if low.priority > high.priority:
        low.right = join(low.right, high)
        return low.update()
    high.left = join(low, high.left)
    return high.update()


def main():
    rng = random.Random(1)
    input()
    root = None
    quarrels = 0
    for ticket in map(int, input().split()):
        low, high = split(root, ticket)
        if high is not None:
            quarrels += high.size
        root = join(join(low, Node(ticket, rng.random())), high)
    print(quarrels)


main()
