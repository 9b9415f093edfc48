"""Kafka in and out, measured on a broker that shares the cores with everybody else."""
