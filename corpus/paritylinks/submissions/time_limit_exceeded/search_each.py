# keeps the graph of believed links and searches it for every rumour
def main():
    n, m = map(int, input().split())
    graph = [[] for _ in range(n + 1)]
    count = total = 0
    for k in range(1, m + 1):
        i, j, b = map(int, input().split())
        side = {i: 0}
        queue = [i]
        for v in queue:
            for w, c in graph[v]:
                if w not in side:
                    side[w] = side[v] ^ c
                    queue.append(w)
        if j in side and side[j] != b:
            count += 1
            total += k
        else:
            graph[i].append((j, b))
            graph[j].append((i, b))
    print(count, total)


main()
