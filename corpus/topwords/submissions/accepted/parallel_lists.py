# two parallel lists; list.index finds the word, a bubble step keeps frequent ones in front
import sys


def clean(line):
    out = ""
    for ch in line:
        if "A" <= ch <= "Z":
            out += chr(ord(ch) + 32)
        elif "a" <= ch <= "z":
            out += ch
        else:
            out += " "
    return out.split()


words = []
counts = []
lines = sys.stdin.read().splitlines()
k = int(lines[0].split()[1])
for line in lines[1:]:
    if line == "#":
        pairs = sorted(zip([-c for c in counts], words))[:k]
        print(" ".join(w + ":" + str(-c) for c, w in pairs) or "-")
        continue
    for word in clean(line):
        try:
            i = words.index(word)
        except ValueError:
            words.append(word)
            counts.append(1)
            continue
        counts[i] += 1
        if i and counts[i] > counts[i - 1]:
            words[i], words[i - 1] = words[i - 1], words[i]
            counts[i], counts[i - 1] = counts[i - 1], counts[i]
