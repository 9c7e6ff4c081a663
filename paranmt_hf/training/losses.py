"""The losses: the margin loss with one negative for each side of a pair, over a teacher's similarities, and penalties.

The losses over a teacher's similarities are not in the papers; the nearest relatives are relational knowledge
distillation (Park et al. 2019, arXiv:1904.05068) for the squares, and ListNet (Cao et al. 2007) for lists.

Penalties of weights are lambda times the squared distance from centres (arXiv:1511.08198, equation 1). The same
functions serve lambda_c (other weights than word embeddings, towards zero or towards where they started) and lambda_w
(word embeddings, towards where they started).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.functional import embedding, normalize

from paranmt_hf.errors import DivergedError
from paranmt_hf.training.config import TrainConfig

if TYPE_CHECKING:
    from paranmt_hf.training.teacher import TeacherVectors

SHORTEST = 1e-12  # The smallest divisor of a vector, as in `torch.nn.functional.normalize`


def margin_loss(
    references: torch.Tensor,
    translations: torch.Tensor,
    reference_negatives: torch.Tensor,
    translation_negatives: torch.Tensor | None = None,
    *,
    margin: float,
) -> torch.Tensor:
    """Compute the mean over pairs of max(0, d - cos(s, s') + cos(s, t)) + max(0, d - cos(s, s') + cos(s', t')).

    arXiv:1511.08198, equation 1; ParaNMT-50M (Wieting & Gimpel 2018), section 4, prints the first term alone, as
    without `translation_negatives`. The margin is relative: `MegaBatchMarginLoss` of sentence-transformers has two
    absolute margins.

    Args:
        references: Vectors s [pair, dimension].
        translations: Vectors s' [pair, dimension].
        reference_negatives: Vectors t [pair, dimension], the negative of each s.
        translation_negatives: Vectors t' [pair, dimension], the negative of each s'.
        margin: d, above 0.
    """
    roles = [references, translations, reference_negatives]
    if translation_negatives is not None:
        roles.append(translation_negatives)
    loss: torch.Tensor = _MarginLoss.apply(torch.cat(roles), len(roles), margin)
    return loss


def margin_loss_and_gradient(vectors: torch.Tensor, roles: int, margin: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute the loss and its gradient [role x pair, dimension], with a quarter of the operations of autograd.

    The vectors are those of s, s', t and, with four roles, t' of all pairs [role x pair, dimension].
    """
    shaped = vectors.unflatten(0, (roles, -1))
    sides, pairs = roles - 2, shaped.shape[1]
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
    """Mean squared difference between the cosines of all pairs of sentences and the teacher's, a scalar.

    The vectors [sentence, dimension] and the teacher's [sentence, teacher dimension] are of the same sentences; the
    cosine of a sentence with itself is left out. If weighted, the square of each pair is multiplied by the teacher's
    cosine (0 if negative) + 0.05.
    """
    student, wanted = normalize(vectors, dim=1), normalize(teacher, dim=1)
    cosines = wanted @ wanted.T
    squares = (student @ student.T - cosines).fill_diagonal_(0).square()
    if weighted:
        squares = squares * (cosines.clamp(min=0) + 0.05)
    count = len(vectors)
    return squares.sum() / max(1, count * (count - 1))


def listwise_loss(vectors: torch.Tensor, teacher: torch.Tensor, temperature: float) -> torch.Tensor:
    """Cross-entropy between the teacher's and the student's distribution of neighbours, a scalar.

    The distribution of a sentence over the others is the softmax of its cosines over the temperature: the lower, the
    more only the nearest sentences count. The mean cross-entropy is multiplied by the temperature, so that its
    gradient has about the size of one of cosines. Copies of a sentence, which have the same vector of the teacher, are
    masked.
    """
    student, wanted = normalize(vectors, dim=1), normalize(teacher, dim=1)
    cosines = wanted @ wanted.T
    # Rounding aside, only a copy has such a cosine.
    copies = (cosines > 1 - 1e-6).fill_diagonal_(True)
    # exp of this is 0, and the logarithm stays finite.
    masked = -1e4
    spread = (cosines / temperature).masked_fill(copies, masked).softmax(dim=1)
    own = ((student @ student.T) / temperature).masked_fill(copies, masked).log_softmax(dim=1)
    return -temperature * (spread * own).sum(dim=1).mean()


def teacher_loss(vectors: torch.Tensor, teacher: torch.Tensor, config: TrainConfig) -> torch.Tensor:
    """Compute the teacher loss that the settings name; arguments as in the two losses."""
    if config.teacher_loss == "listwise":
        return listwise_loss(vectors, teacher, config.temperature)
    return similarity_loss(vectors, teacher, weighted=config.teacher_loss == "weighted")


def diverged(step: str, loss: float) -> DivergedError:
    """Create the error for a loss, or for vectors, that are not finite."""
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

    `vectors` are those of the sentences, role after role [role x pair, dimension]; `sentences` are their positions in
    the mega-batch [role, pair]: s, s' and, with a margin loss, t and t'.
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


@dataclass
class Pull:
    """A weight that is pulled towards a centre, in all rows and in every step."""

    weight: torch.Tensor  # The weight, of any shape
    strength: float  # lambda, at least 0
    centre: torch.Tensor | None = None  # Values of the weight's shape; None for zeros
    # Distinct rows of a table [row] that are trained; the centre has these rows, and the gradient is sparse. None for
    # all rows.
    rows: torch.Tensor | None = None

    def penalty(self) -> torch.Tensor:
        """Strength times the squared distance from the centre, a differentiable scalar."""
        weight = self.weight if self.rows is None else embedding(self.rows, self.weight, sparse=True)
        if self.centre is None:
            return self.strength * weight.square().sum()
        self.centre = self.centre.to(weight.device)
        return self.strength * (weight - self.centre).square().sum()


def penalty(pulls: Iterable[Pull]) -> torch.Tensor | float:
    """Sum the penalties of weights; 0.0 if there are none."""
    return sum((pull.penalty() for pull in pulls), 0.0)


def towards_zero(weights: Iterable[torch.Tensor], strength: float) -> list[Pull]:
    """Pull weights towards zero; frozen weights are left out, and all if the strength is 0."""
    return [Pull(weight, strength) for weight in weights if strength and weight.requires_grad]


def towards_initial(weights: Iterable[torch.Tensor], strength: float) -> list[Pull]:
    """Pull weights towards their current values; see `towards_zero`."""
    return [Pull(weight, strength, weight.detach().clone()) for weight in weights if strength and weight.requires_grad]


def rows_towards_initial(table: torch.Tensor, rows: torch.Tensor, strength: float) -> list[Pull]:
    """Pull the distinct trained rows [row] of a table towards their current values; see `towards_zero`."""
    return [Pull(table, strength, table.detach()[rows], rows)] if strength and table.requires_grad else []
