"""A LangChain vector store with an encoder of this package.

Run:   python docs/examples/langchain_store.py [SENTENCES.txt [QUERY]]
Needs: pip install langchain-core. Without arguments it searches the sample of the package.
"""

import sys
from importlib.resources import files
from pathlib import Path

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

import paranmt_hf

SAMPLE = files("paranmt_hf") / "assets" / "sample"  # Sentences of the package


class ParaNMTEmbeddings(Embeddings):
    """An encoder as the embeddings of LangChain: a folder, an id on the Hub, or `small`."""

    def __init__(self, model: str = "small") -> None:
        self.encoder = paranmt_hf.load(model)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Encode texts, as the store asks for."""
        return self.encoder.encode_document(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        """Encode a query."""
        return self.encoder.encode_query(text).tolist()


file = sys.argv[1] if len(sys.argv) > 1 else SAMPLE / "sample.en"
query = sys.argv[2] if len(sys.argv) > 2 else "Kids playing with a ball."
store = InMemoryVectorStore.from_texts(Path(file).read_text(encoding="utf8").splitlines(), ParaNMTEmbeddings())
print(query)
for document, score in store.similarity_search_with_score(query, k=3):
    print(f"  {score:.2f}  {document.page_content}")
