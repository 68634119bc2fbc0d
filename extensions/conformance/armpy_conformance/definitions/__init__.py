# SPDX-License-Identifier: Apache-2.0
"""Operations computed straight from their descriptions, without any backend."""
