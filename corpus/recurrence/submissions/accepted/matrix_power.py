# textbook 2x2 matrix power by squaring, for every question


def multiply(x, y, m):
    return (
        (x[0] * y[0] + x[1] * y[2]) % m,
        (x[0] * y[1] + x[1] * y[3]) % m,
        (x[2] * y[0] + x[3] * y[2]) % m,
        (x[2] * y[1] + x[3] * y[3]) % m,
    )


def power(x, n, m):
    result = (1, 0, 0, 1)
    while n:
        if n & 1:
            result = multiply(result, x, m)
        x = multiply(x, x, m)
        n >>= 1
    return result


a, b, m, x0, x1 = map(int, input().split())
for _ in range(int(input())):
    top = power((a, b, 1, 0), int(input()), m)
    print((top[2] * x1 + top[3] * x0) % m)
