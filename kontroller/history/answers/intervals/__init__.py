"""Operations on intervals that all answers share: days, racks, states."""
