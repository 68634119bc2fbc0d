"""Models in either form that functions take: as they were built, or as plain data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from armpy.nnapi.description.model_description import ModelDescription
from armpy.nnapi.results import bad_data

if TYPE_CHECKING:
    from armpy.nnapi.devices import DeviceManager


class IModel(ABC):
    """A model that an application builds; see `Model`."""

    @property
    @abstractmethod
    def description(self) -> ModelDescription:
        """The finished model as plain data."""

    @property
    @abstractmethod
    def manager(self) -> DeviceManager:
        """Whose extensions it can use."""


def described(model: IModel | ModelDescription, where: str, others: str = "") -> ModelDescription:
    """A model as plain data.

    Parameters
    ----------
    model : Model or ModelDescription
    where : str
    others : str
        What else would have done.

    Raises
    ------
    NnapiError
        BAD_DATA if it is something else; BAD_STATE if it is not finished.
    """
    if isinstance(model, ModelDescription):
        return model
    if isinstance(model, IModel):
        return model.description
    raise bad_data(
        "this is no model",
        where=where,
        expected="a finished Model, or a ModelDescription" + others,
        actual=repr(model),
    )
