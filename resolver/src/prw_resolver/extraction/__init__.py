"""Run adapters over stored evidence; keep their claims, and what these mean under the published vocabulary."""
