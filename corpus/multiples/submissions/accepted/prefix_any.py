# one pass over the street for each team, any() at every house, running sums kept
def team():
    m, *ds = map(int, input().split())
    q, *ns = map(int, input().split())
    running = [0]
    for house in range(1, max(ns) + 1):
        if any(house % d == 0 for d in ds):
            running.append(running[-1] + house)
        else:
            running.append(running[-1])
    return [running[n] for n in ns]


for _ in range(int(input())):
    print(*team())
