"""Does the audit find what is known, and do its forecasts hold?"""
