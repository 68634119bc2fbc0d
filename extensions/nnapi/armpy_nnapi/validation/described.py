"""Models in either form that functions take: as they were built, or as plain data."""

from __future__ import annotations

from abc import ABC, abstractmethod

from armpy.core.dataclass import dataclass
from armpy_nnapi.description.model_description import ModelDescription
from armpy_nnapi.extensions.extensions import ExtensionLookup
from armpy_nnapi.results import bad_data


@dataclass(frozen=True, slots=True)
class FinishedModel:
    """A model that was sorted, checked and simplified."""

    description: ModelDescription  # valid, its operations in an order in which they can run
    order: tuple[int, ...]  # for each of the main graph's operations, which one it was before


class IModel(ABC):
    """A model that an application builds; see `Model`."""

    @property
    @abstractmethod
    def description(self) -> ModelDescription:
        """The finished model as plain data."""

    @property
    @abstractmethod
    def extension_lookup(self) -> ExtensionLookup:
        """The function that looks up its vendor extensions."""

    @abstractmethod
    def check_finished(self, where: str) -> FinishedModel:
        """The finished model; BAD_STATE if it is not finished."""

    @abstractmethod
    def check_manager(self, manager: object, where: str) -> None:
        """Check that a manager is the one that it was made for; BAD_DATA if not."""


def described(model: IModel | ModelDescription, where: str, others: str = "") -> ModelDescription:
    """A model as plain data.

    Parameters
    ----------
    others : str
        Description of what else is allowed.

    Raises
    ------
    NnapiError
        BAD_DATA if it is something else; BAD_STATE if it is not finished.
    """
    if isinstance(model, ModelDescription):
        return model
    # By its interface: the class itself is built on these rules.
    if isinstance(model, IModel):
        return model.description
    raise bad_data(
        "this is not a model",
        where=where,
        expected="a finished Model, or a ModelDescription" + others,
        actual=repr(model),
    )
