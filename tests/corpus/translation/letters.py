"""A translator without a model: it writes sentences backwards, one piece per letter."""

from paranmt_hf.corpus.translation.batches import BatchTranslator


class LetterCodec:
    """One piece per letter and an end token."""

    max_source_tokens = 10

    def encode(self, sentences):
        return [[*map(ord, text), 0] for text in sentences]

    def decode(self, hypotheses):
        return ["".join(map(chr, ids)) for ids in hypotheses]


class ReversingTranslator(BatchTranslator):
    """Writes sentences backwards; remembers its batches and has memory for `capacity` pieces."""

    def __init__(self, *, batch_tokens=30, workers=1, capacity=10**6):
        super().__init__(LetterCodec(), batch_tokens=batch_tokens, workers=workers)
        self.identity = {"max_source_tokens": LetterCodec.max_source_tokens}
        self.batches = []
        self.capacity = capacity

    def search(self, sources):
        if len(sources) * max(map(len, sources)) > self.capacity:
            raise MemoryError
        self.batches.append([len(source) for source in sources])
        return [source[-2::-1] for source in sources], [-float(len(source)) for source in sources]
