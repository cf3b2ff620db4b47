# sorted buckets of bounded length; counts of whole buckets are added up, the rest is bisected
import sys
from bisect import bisect_right, insort

LOAD = 700


def main():
    data = sys.stdin.buffer.read().split()
    buckets = [[]]
    tops = []
    answer = 0
    seen = 0
    for v in map(int, data[1:]):
        b = bisect_right(tops, v)
        bucket = buckets[b]
        below = sum(map(len, buckets[:b])) + bisect_right(bucket, v)
        answer += seen - below
        insort(bucket, v)
        seen += 1
        if len(bucket) > LOAD:
            half = LOAD // 2
            buckets[b:b + 1] = [bucket[:half], bucket[half:]]
            tops.insert(b, bucket[half])
    print(answer)


main()
