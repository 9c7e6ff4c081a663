"""The definition of the mismatch columns, written slowly: one pair, one sentence, one chunk at a time."""

from paranmt_hf.corpus.meaning import columns as negation
from paranmt_hf.corpus.meaning import names, numbers


def unconfirmed(claims, evidence):
    """Count the different claims of one sentence that the evidence of the other does not confirm."""
    return sum(set(evidence).isdisjoint(claim) for claim in set(claims))


def both_ways(claims, evidence):
    return unconfirmed(claims[0], evidence[1]) + unconfirmed(claims[1], evidence[0])


def flags(bits, chunk):
    return bits(chunk, names.WORD.findall(chunk))


def neighbours(marks, index):
    return (marks[index - 1] if index else 0), (marks[index + 1] if index + 1 < len(marks) else 0)


def numbers_of(sentence):
    chunks = sentence.split(" ")
    marks = [flags(numbers.number_bits, chunk) for chunk in chunks]
    runs, last = [], -2
    for index, (chunk, mark) in enumerate(zip(chunks, marks, strict=True)):
        before, after = neighbours(marks, index)
        inside = (
            mark & numbers.NUMBER
            or (mark & numbers.AND and before & numbers.SCALE and after & numbers.NUMBER)
            or (mark & numbers.PER and after & numbers.CENT)
            or (mark & numbers.CENT and before & numbers.PER)
            or (mark & numbers.HALF_DAY and before & numbers.NUMBER)
            or (mark & numbers.A and before & numbers.HALF and after & numbers.SCALE)
        )
        if inside:
            if last == index - 1:
                runs[-1].append(chunk)
            else:
                runs.append([chunk])
            last = index
    readings = [numbers.numbers_in(" ".join(run)) for run in runs]
    return [c for r in readings for c in r.claims], [e for r in readings for e in r.evidence]


def number_mismatch(reference, translation):
    return both_ways(*zip(numbers_of(reference), numbers_of(translation), strict=True))


def negations_of(sentence):
    marks = [flags(negation.negation_bits, chunk) for chunk in sentence.split(" ")]
    count = 0
    for index, mark in enumerate(marks):
        before, after = neighbours(marks, index)
        taken = mark & negation.IS_NOT and (after & negation.TAKES_NOT or before & negation.IS_OR)
        taken = taken or (mark & negation.IS_NO and after & negation.TAKES_NO)
        count += bool(mark & negation.NEGATES and not taken)
    return count, any(mark & negation.CONFIRMS for mark in marks)


def negation_mismatch(reference, translation):
    (first, first_confirms), (second, second_confirms) = negations_of(reference), negations_of(translation)
    return (0 if second_confirms else first) + (0 if first_confirms else second)


def names_of(sentence):
    chunks = sentence.split(" ")
    marks = [flags(names.name_bits, chunk) for chunk in chunks]
    runs, last = [], -2
    for index, (chunk, mark) in enumerate(zip(chunks, marks, strict=True)):
        if not mark & names.CAPITAL:
            continue
        before, _ = neighbours(marks, index)
        opens = index == 0 or bool(before & names.ENDS or mark & names.OPENS)
        if last == index - 1 and not opens and not before & names.TAIL:
            runs[-1][1].append(chunk)
        else:
            runs.append((opens, [chunk]))
        last = index
    readings = [names.names_in(" " * opens + " ".join(run)) for opens, run in runs]
    capitals = sum(bool(mark & names.CAPITAL) for mark in marks)
    headline = 2 * capitals > sum(bool(mark & names.LETTERS) for mark in marks)
    headline = headline and not any(mark & names.PLAIN for mark in marks)
    claims = [] if headline else [c for r in readings for c in r.claims]
    words = [key for chunk in chunks for key in names.name_keys(chunk, names.WORD.findall(chunk))]
    return claims, [*words, *(e for r in readings for e in r.evidence)]


def name_mismatch(reference, translation):
    return both_ways(*zip(names_of(reference), names_of(translation), strict=True))


SLOW = {"number_mismatch": number_mismatch, "negation_mismatch": negation_mismatch, "name_mismatch": name_mismatch}
