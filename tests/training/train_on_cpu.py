"""`paranmt train --device cuda` of averaging models with torch's CPU device in each GPU's place, for `torchrun`.

PARANMT_TEST_FAILS says what goes wrong, as `RANK:WHERE:HOW`: in which process, before which mega-batch of all or in
`prepare`, and whether it is killed (`kill`), refuses its input (`refuse`) or does nothing any more (`hang`).
"""

import os
import signal
import sys
import time
from datetime import timedelta

import torch

from paranmt_hf.cli import console_main
from paranmt_hf.errors import InputError
from paranmt_hf.training import checkpoint, distributed, train
from paranmt_hf.training import prepare as prepare_training
from paranmt_hf.training.device import engine
from paranmt_hf.training.device.engine import DeviceEngine

CPU = torch.device("cpu")
RANK, WHERE, HOW = os.environ.get("PARANMT_TEST_FAILS", "::").split(":")


def fail(where):
    if RANK == os.environ.get("RANK", "0") and str(where) == WHERE:
        if HOW == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if HOW == "hang":
            time.sleep(600)
        raise InputError("this process has no luck")


made, joined, trained = engine.device_engine, distributed.join, DeviceEngine.train_on
prepared = prepare_training.prepare_training
count = iter(range(sys.maxsize))


def prepare(*arguments):
    fail("prepare")
    return prepared(*arguments)


def train_on(self, *arguments):
    fail(next(count))
    return trained(self, *arguments)


def device_engine(composition, config, pairs, teacher, device, **options):
    assert device.type == "cuda"
    return made(composition, config, pairs, teacher, CPU, **options)


engine.device_engine = device_engine
train._check_device = lambda config: None
distributed.join = lambda device: joined(CPU)
prepare_training.prepare_training = prepare
checkpoint.CHECKPOINT_SECONDS = 0
DeviceEngine.train_on = train_on
torch.cuda.device_count = lambda: 8
if HOW == "hang":
    distributed.STEP_TIMEOUT = timedelta(seconds=3)

if __name__ == "__main__":
    console_main()
