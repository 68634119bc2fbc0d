"""Cases of the contract that do not belong to one operation."""

from armpy_conformance.contract.case import ContractCase, judge_contract
from armpy_conformance.contract.table import CONTRACT_CASES

__all__ = ["CONTRACT_CASES", "ContractCase", "judge_contract"]
