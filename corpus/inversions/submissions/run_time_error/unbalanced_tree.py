# binary search tree without balance, recursive insert
class Node:
    def __init__(self, value):
        self.value = value
        self.left = self.right = None
        self.size = 1


def insert(node, value):
    """number of larger values below node"""
    node.size += 1
    if value < node.value:
        more = node.size - 1 - (node.left.size if node.left else 0)
        if node.left:
            return more + insert(node.left, value)
        node.left = Node(value)
        return more
    if node.right:
        return insert(node.right, value)
    node.right = Node(value)
    return 0


input()
first, *rest = map(int, input().split())
root = Node(first)
print(sum(insert(root, v) for v in rest))
