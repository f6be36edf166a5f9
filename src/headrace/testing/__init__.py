"""Test a topology without a JVM and without a broker."""

from headrace.testing.driver import TopologyTestDriver
from headrace.testing.mock_context import CapturedForward, CapturedPunctuator, MockProcessorContext
from headrace.testing.topics import TestInputTopic, TestOutputTopic, TestRecord

__all__ = [
    "CapturedForward",
    "CapturedPunctuator",
    "MockProcessorContext",
    "TestInputTopic",
    "TestOutputTopic",
    "TestRecord",
    "TopologyTestDriver",
]
