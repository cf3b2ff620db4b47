# collects the list of divisors of every number, then sums them up
def main():
    q = int(input())
    queries = [tuple(map(int, input().split())) for _ in range(q)]
    top = max(r for _, r in queries)
    divisors = [[] for _ in range(top + 1)]
    for d in range(1, top + 1):
        for k in range(d, top + 1, d):
            divisors[k].append(d)
    prefix = [0]
    for k in range(1, top + 1):
        prefix.append(prefix[-1] + sum(divisors[k]))
    for l, r in queries:
        print(prefix[r] - prefix[l - 1])


main()
