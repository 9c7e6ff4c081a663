"""The definition of the mismatch columns, written slowly: one pair, one sentence, one chunk at a time."""

import pyarrow as pa

from paranmt_hf import normal_form
from paranmt_hf.meaning import addresses, names, number_words, numbers
from paranmt_hf.meaning import chunks as marked
from paranmt_hf.meaning.negations import negation_bits


def unconfirmed(claims, evidence):
    """Count the different claims of one sentence that the evidence of the other does not confirm."""
    return sum(counts(claim, evidence) and set(evidence).isdisjoint(claim) for claim in set(claims))


def counts(claim, evidence):
    """Whether one of the conditions of a claim holds, if it has any."""
    conditions = [key.removeprefix("if ") for key in claim if key.startswith("if ")]
    return not conditions or not set(evidence).isdisjoint(conditions)


def chunks_of(sentence):
    return normal_form(pa.array([sentence]))[0].as_py().split(" ")


def both_ways(claims, evidence):
    return unconfirmed(claims[0], evidence[1]) + unconfirmed(claims[1], evidence[0])


def flags(bits, chunk):
    return bits(chunk, names.WORD.findall(chunk))


def neighbours(marks, index):
    return (marks[index - 1] if index else 0), (marks[index + 1] if index + 1 < len(marks) else 0)


def numbers_of(sentence):
    chunks = chunks_of(sentence)
    marks = [flags(number_words.number_bits, chunk) for chunk in chunks]
    runs, last = [], -2
    for index, (chunk, mark) in enumerate(zip(chunks, marks, strict=True)):
        before, after = neighbours(marks, index)
        inside = (
            mark & marked.NUMBER
            or (mark & marked.AND and before & marked.SCALE and after & marked.NUMBER)
            or (mark & marked.PER and after & marked.CENT)
            or (mark & marked.CENT and before & marked.PER)
            or (mark & marked.HALF_DAY and before & marked.NUMBER)
            or (mark & marked.A and before & marked.HALF and after & marked.SCALE)
            or begins_part(marks, index)
            or (mark & marked.AND and before & marked.NUMBER and begins_part(marks, index + 1))
        )
        if inside:
            if last == index - 1:
                runs[-1].append(chunk)
            else:
                runs.append([chunk])
            last = index
    readings = [numbers.numbers_in(" ".join(run)) for run in runs]
    return [c for r in readings for c in r.claims], [e for r in readings for e in r.evidence]


def begins_part(marks, index):
    """Whether a chunk is the first of `a half` or `a third`."""
    if index + 1 >= len(marks) or not marks[index] & marked.A:
        return False
    return bool(marks[index + 1] & (marked.HALF | marked.PART))


def number_mismatch(reference, translation):
    return both_ways(*zip(numbers_of(reference), numbers_of(translation), strict=True))


def negations_of(sentence):
    marks = [flags(negation_bits, chunk) for chunk in chunks_of(sentence)]
    count = 0
    for index, mark in enumerate(marks):
        before, after = neighbours(marks, index)
        taken = mark & marked.IS_NOT and (after & marked.TAKES_NOT or before & marked.IS_OR)
        taken = taken or (mark & marked.IS_NO and after & marked.TAKES_NO)
        taken = taken or turned(marks, index)
        taken = taken or (mark & marked.NEGATIVE and index and turned(marks, index - 1))
        count += bool(mark & marked.NEGATES and not taken)
    return count, any(mark & marked.CONFIRMS for mark in marks)


def turned(marks, index):
    """Whether a negation is followed by a negative word, with up to two words of degree between them."""
    ahead = index + 1
    while ahead < min(index + 3, len(marks)) and marks[ahead] & marked.DEGREE:
        if marks[ahead] & marked.NEGATIVE:
            break
        ahead += 1
    return bool(marks[index] & marked.TURNS and ahead < len(marks) and marks[ahead] & marked.NEGATIVE)


def negation_mismatch(reference, translation):
    (first, first_confirms), (second, second_confirms) = negations_of(reference), negations_of(translation)
    return (0 if second_confirms else first) + (0 if first_confirms else second)


def names_of(sentence):
    chunks = chunks_of(sentence)
    marks = [flags(names.name_bits, chunk) for chunk in chunks]
    runs, last = [], -2
    for index, (chunk, mark) in enumerate(zip(chunks, marks, strict=True)):
        if not mark & marked.CAPITAL:
            continue
        before, _ = neighbours(marks, index)
        opens = index == 0 or bool(before & marked.ENDS or mark & marked.OPENS)
        if last == index - 1 and not opens and not before & marked.TAIL:
            runs[-1][1].append(chunk)
        else:
            runs.append((opens, [chunk]))
        last = index
    readings = [names.names_in(" " * opens + " ".join(run)) for opens, run in runs]
    capitals = sum(bool(mark & marked.CAPITAL) for mark in marks)
    headline = 2 * capitals > sum(bool(mark & marked.LETTERS) for mark in marks)
    headline = headline and not any(mark & marked.PLAIN for mark in marks)
    claims = [] if headline else [c for r in readings for c in r.claims]
    words = [key for chunk in chunks for key in names.name_keys(chunk, names.WORD.findall(chunk))]
    return claims, [*words, *(e for r in readings for e in r.evidence)]


def name_mismatch(reference, translation):
    return both_ways(*zip(names_of(reference), names_of(translation), strict=True))


def addresses_of(sentence):
    readings = [addresses.addresses_in(chunk) for chunk in chunks_of(sentence) if addresses.has_address(chunk)]
    return [c for r in readings for c in r.claims], [e for r in readings for e in r.evidence]


def address_mismatch(reference, translation):
    return both_ways(*zip(addresses_of(reference), addresses_of(translation), strict=True))


SLOW = {
    "number_mismatch": number_mismatch,
    "negation_mismatch": negation_mismatch,
    "name_mismatch": name_mismatch,
    "address_mismatch": address_mismatch,
}
