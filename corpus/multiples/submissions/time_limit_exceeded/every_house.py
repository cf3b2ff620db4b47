# walks the whole street for every length and tries every divisor
def is_lit(house, divisors):
    return any(house % d == 0 for d in divisors)


for _ in range(int(input())):
    divisors = list(map(int, input().split()))[1:]
    lengths = list(map(int, input().split()))[1:]
    print(*[sum(h for h in range(1, n + 1) if is_lit(h, divisors)) for n in lengths])
