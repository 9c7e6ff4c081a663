"""The losses: the margin loss with one negative for each side of a pair, and the loss over a teacher's similarities.

The losses over a teacher's similarities are not in the papers; the nearest relatives are relational knowledge
distillation (Park et al. 2019, arXiv:1904.05068) for the squares, and ListNet (Cao et al. 2007) for lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.functional import normalize

from paranmt_hf.errors import DivergedError
from paranmt_hf.training.config import TrainConfig

if TYPE_CHECKING:
    from paranmt_hf.training.teacher import TeacherVectors

# The smallest divisor of a vector, as in `torch.nn.functional.normalize`.
SHORTEST = 1e-12
# Weight of a pair that the teacher finds unlike, next to pairs that weigh their cosine.
LEAST_WEIGHT = 0.05
# A teacher's cosine above this is that of a sentence with its copy, rounding aside.
COPY_COSINE = 1 - 1e-6
# exp of this is 0, and the logarithm stays finite.
MASKED = -1e4


def margin_loss(
    references: torch.Tensor,
    translations: torch.Tensor,
    reference_negatives: torch.Tensor,
    translation_negatives: torch.Tensor | None = None,
    *,
    margin: float,
) -> torch.Tensor:
    """Compute the mean over pairs of max(0, d - cos(s, s') + cos(s, t)) + max(0, d - cos(s, s') + cos(s', t')).

    arXiv:1511.08198, equation 1; ParaNMT-50M (Wieting & Gimpel 2018), section 4, prints the first term alone. The
    margin is relative: `MegaBatchMarginLoss` of sentence-transformers has two absolute margins.

    Args:
        references: Vectors s [pair, dimension].
        translations: Vectors s' [pair, dimension].
        reference_negatives: Vectors t [pair, dimension], the negative of each s.
        translation_negatives: Vectors t' [pair, dimension], the negative of each s'; None leaves out the second term.
        margin: d, above 0.

    Returns:
        The loss, a scalar that has a gradient.
    """
    roles = [references, translations, reference_negatives]
    if translation_negatives is not None:
        roles.append(translation_negatives)
    loss: torch.Tensor = _MarginLoss.apply(torch.cat(roles), len(roles), margin)
    return loss


def margin_loss_and_gradient(
    vectors: torch.Tensor, roles: int, margin: float, of: int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute the loss with its gradient, in a quarter of the operations that autograd needs.

    Args:
        vectors: Vectors s, s', t and, with two sides, t' of all pairs [role x pair, dimension].
        roles: Number of roles, 3 or 4.
        margin: d, above 0.
        of: Number of pairs of the mini-batch, if these are a part of it.

    Returns:
        The loss, a scalar, and its gradient [role x pair, dimension].
    """
    shaped = vectors.unflatten(0, (roles, -1))
    sides, pairs = roles - 2, of or shaped.shape[1]
    lengths = torch.linalg.vector_norm(shaped, dim=2, keepdim=True).clamp_min(SHORTEST)
    unit = shaped / lengths
    gap = margin - (unit[0] * unit[1]).sum(dim=1)
    hinge = gap + (unit[:sides] * unit[2:]).sum(dim=2)
    loss = hinge.clamp(min=0).sum() / pairs
    # The weight of each cosine in the loss: a negative's of each side [side, pair, 1], and minus both for the pair.
    active = ((hinge >= 0).to(hinge.dtype) / pairs).unsqueeze(2)
    # With respect to the unit vectors: of s it is t, weighted, minus s', weighted by both sides.
    own = unit[:2].flip(0) * -active.sum(dim=0)
    own[:sides].addcmul_(active, unit[2:])
    slope = torch.cat([own, active * unit[:sides]])
    # With respect to the vectors: the part along a unit vector changes only its length.
    along = (slope * unit).sum(dim=2, keepdim=True)
    return loss, ((slope - along * unit) / lengths).flatten(0, 1)


class _MarginLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, vectors: torch.Tensor, roles: int, margin: float) -> torch.Tensor:
        loss, gradient = margin_loss_and_gradient(vectors, roles, margin)
        ctx.save_for_backward(gradient)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor, None, None]:  # noqa: ANN401
        (gradient,) = ctx.saved_tensors
        return upstream * gradient, None, None


def similarity_loss(vectors: torch.Tensor, teacher: torch.Tensor, *, weighted: bool = False) -> torch.Tensor:
    """Mean squared difference between the cosines of all pairs of sentences and the teacher's.

    Args:
        vectors: Sentence vectors [sentence, dimension].
        teacher: The teacher's vectors of the same sentences [sentence, teacher dimension].
        weighted: Multiply the square of each pair by the teacher's cosine (0 if negative) + 0.05.

    Returns:
        The loss, a scalar; the cosine of a sentence with itself is left out.
    """
    student, wanted = normalize(vectors, dim=1), normalize(teacher, dim=1)
    cosines = wanted @ wanted.T
    squares = (student @ student.T - cosines).fill_diagonal_(0).square()
    if weighted:
        squares = squares * (cosines.clamp(min=0) + LEAST_WEIGHT)
    count = len(vectors)
    return squares.sum() / max(1, count * (count - 1))


def listwise_loss(vectors: torch.Tensor, teacher: torch.Tensor, temperature: float) -> torch.Tensor:
    """Cross-entropy between the teacher's and the student's distribution of neighbours.

    The distribution of a sentence over the others is the softmax of its cosines over the temperature. The mean
    cross-entropy is multiplied by the temperature, so that its gradient has about the size of one of cosines. Copies
    of a sentence, which have the same vector of the teacher, are masked.

    Args:
        vectors: Sentence vectors [sentence, dimension].
        teacher: The teacher's vectors of the same sentences [sentence, teacher dimension].
        temperature: Divisor of cosines; the lower, the more only the nearest sentences count.

    Returns:
        The loss, a scalar.
    """
    student, wanted = normalize(vectors, dim=1), normalize(teacher, dim=1)
    cosines = wanted @ wanted.T
    copies = (cosines > COPY_COSINE).fill_diagonal_(True)
    spread = (cosines / temperature).masked_fill(copies, MASKED).softmax(dim=1)
    own = ((student @ student.T) / temperature).masked_fill(copies, MASKED).log_softmax(dim=1)
    return -temperature * (spread * own).sum(dim=1).mean()


def teacher_loss(vectors: torch.Tensor, teacher: torch.Tensor, config: TrainConfig) -> torch.Tensor:
    """Compute the loss over a teacher's similarities that the settings name; arguments as of the two losses."""
    if config.teacher_loss == "listwise":
        return listwise_loss(vectors, teacher, config.temperature)
    return similarity_loss(vectors, teacher, weighted=config.weigh_similar)


def diverged(step: str, loss: float) -> DivergedError:
    """Make the error for a loss, or for vectors that give a loss, that is not finite."""
    return DivergedError(
        f"the loss of step {step} is {loss}; lower the learning rate or look for broken initial vectors"
    )


def combined_loss(
    vectors: torch.Tensor,
    keys: np.ndarray,
    sentences: np.ndarray,
    config: TrainConfig,
    teacher: TeacherVectors | None = None,
) -> torch.Tensor:
    """Compute the weighted sum of the margin loss and the loss over a teacher's similarities.

    Args:
        vectors: Vectors of the sentences, role after role [role x pair, dimension].
        keys: Key of each sentence of the mega-batch.
        sentences: Positions in the mega-batch [role, pair]: s, s' and, with a margin loss, t and t'.
        config: The weights and the margin.
        teacher: The teacher's vectors, if similarities are learned too.
    """
    terms = []
    if config.margin_weight:
        terms.append(config.margin_weight * margin_loss(*vectors.chunk(len(sentences)), margin=config.margin))
    if teacher is not None:
        own = sentences[:2].ravel()
        taught = teacher.of(keys[own]).to(vectors.device)
        term = teacher_loss(vectors[: len(own)], taught, config)
        terms.append(config.teacher_weight * term)
    return torch.stack(terms).sum()
