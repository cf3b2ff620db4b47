# top-down with a dictionary and an explicit stack of (coins left, price)
def ways(coins, memo, price):
    start = (len(coins), price)
    stack = [start]
    while stack:
        state = k, rest = stack[-1]
        if k == 1:
            memo[state] = 1
            stack.pop()
            continue
        without = memo.get((k - 1, rest))
        if without is None:
            stack.append((k - 1, rest))
            continue
        using = 0
        coin = coins[k - 1]
        if rest >= coin:
            using = memo.get((k, rest - coin))
            if using is None:
                stack.append((k, rest - coin))
                continue
        memo[state] = without + using
        stack.pop()
    return memo[start]


k, q = map(int, input().split())
coins = list(map(int, input().split()))
memo = {}
for p in input().split():
    print(ways(coins, memo, int(p)))
