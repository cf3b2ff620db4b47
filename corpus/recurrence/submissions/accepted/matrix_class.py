# a small Matrix class with operators, raised to the n-th power for every question
from dataclasses import dataclass


@dataclass
class Matrix:
    a: int
    b: int
    c: int
    d: int
    m: int

    def __mul__(self, other):
        return Matrix(
            (self.a * other.a + self.b * other.c) % self.m,
            (self.a * other.b + self.b * other.d) % self.m,
            (self.c * other.a + self.d * other.c) % self.m,
            (self.c * other.b + self.d * other.d) % self.m,
            self.m,
        )

    def __pow__(self, n):
        result = Matrix(1, 0, 0, 1, self.m)
        base = self
        while n:
            if n % 2:
                result = result * base
            n //= 2
            if n:
                base = base * base
        return result


a, b, m, x0, x1 = map(int, input().split())
step = Matrix(a, b, 1, 0, m)
for _ in range(int(input())):
    jump = step ** int(input())
    print((jump.c * x1 + jump.d * x0) % m)
