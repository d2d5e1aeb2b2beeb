"""Questions of a broker's pod about its broker: is it ready, and may it stop?"""
