"""What an address says."""

import pytest

from seed_rl.grpc import addresses


@pytest.mark.parametrize(
    "address", ["unix:/tmp/x", "localhost:1", "127.0.0.1:1", "127.9.9.9:1", "[::1]:1"]
)
def test_addresses_that_only_this_machine_can_reach(address: str) -> None:
    addresses.check(address)
    assert addresses.is_local(address)


@pytest.mark.parametrize("address", ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "learner:1"])
def test_addresses_that_others_may_reach(address: str) -> None:
    addresses.check(address)
    assert not addresses.is_local(address)
