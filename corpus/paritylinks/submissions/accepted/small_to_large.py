# groups as lists, the smaller one moves
def main():
    n, m = map(int, input().split())
    where = list(range(n + 1))
    members = [[v] for v in range(n + 1)]
    side = [0] * (n + 1)
    bad = 0
    bad_sum = 0
    for number in range(1, m + 1):
        i, j, b = map(int, input().split())
        p, q = where[i], where[j]
        if p == q:
            if side[i] ^ side[j] ^ b:
                bad += 1
                bad_sum += number
        else:
            if len(members[p]) < len(members[q]):
                p, q = q, p
            if side[i] ^ side[j] ^ b:
                for v in members[q]:
                    side[v] ^= 1
            for v in members[q]:
                where[v] = p
            members[p] += members[q]
            members[q] = None
    print(bad, bad_sum)


main()
