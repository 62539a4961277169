"""The AWS simulator: moto behind a program that mends what moto gets wrong."""
