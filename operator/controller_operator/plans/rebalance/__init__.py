"""Decides about RebalancePlans."""
