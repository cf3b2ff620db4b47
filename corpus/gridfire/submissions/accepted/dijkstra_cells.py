# Dijkstra over cell objects that compare by minute
import heapq
from dataclasses import dataclass, field


@dataclass(order=True)
class Cell:
    minute: int
    row: int = field(compare=False)
    col: int = field(compare=False)
    burnt: bool = field(default=False, compare=False)


class Field:
    def __init__(self, lines):
        self.cells = {}
        for i, line in enumerate(lines):
            for j, ch in enumerate(line):
                if ch == "F":
                    self.cells[i, j] = Cell(0, i, j)
                elif ch == ".":
                    self.cells[i, j] = Cell(10**9, i, j)

    def neighbours(self, cell):
        for di, dj in ((-1, 0), (0, -1), (0, 1), (1, 0)):
            other = self.cells.get((cell.row + di, cell.col + dj))
            if other is not None and not other.burnt:
                yield other

    def burn(self):
        heap = [cell for cell in self.cells.values() if cell.minute == 0]
        last = 0
        while heap:
            cell = heapq.heappop(heap)
            cell.burnt = True
            last = cell.minute
            for other in self.neighbours(cell):
                if cell.minute + 1 < other.minute:
                    other.minute = cell.minute + 1
                    heapq.heappush(heap, other)
        return last, sum(not cell.burnt for cell in self.cells.values())


r, c = map(int, input().split())
print(*Field([input() for _ in range(r)]).burn())
