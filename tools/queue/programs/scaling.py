#!/usr/bin/env python3
"""Simulates from recorded times how evaluation on a queue scales with the number of workers.

The coordinator prepares jobs and collects answers one after the other, with a bound on jobs in the queue; the server answers
requests one after the other; a worker takes a job, reads its content, runs a process for it and answers; without a job it
polls again after a pause that doubles. All times come from a file like times.json, and times of jobs are drawn from it. The
simulation ignores transfer times of large content, workers that die, and other commands on the same server.

    scaling.py times.json    a table for 1 to 1,000 workers
"""
import argparse
import heapq
import json
import random

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0  # seconds between polls of a worker (tools/queue/worker.cpp)


def simulate(times, workers, jobs, job_seconds=None, seed=1):
    """Seconds until all answers are collected, and the utilisation of coordinator and server."""
    draw = random.Random(seed)
    server_free = coordinator_free = server_busy = coordinator_busy = 0.0
    waiting = 0  # jobs on the queue without a worker
    made = taken = 0
    outstanding = 0
    order = 0
    events = []

    def at(time, what, which=0):
        nonlocal order
        heapq.heappush(events, (time, order, what, which))
        order += 1

    def serve(time, requests):
        """The time at which the server has answered `requests` sequential requests."""
        nonlocal server_free, server_busy
        cost = requests * times["server_request_seconds"]
        server_free = max(server_free, time) + cost
        server_busy += cost
        return max(server_free, time + requests * times["request_seconds"])

    def coordinate(time, seconds):
        nonlocal coordinator_free, coordinator_busy
        coordinator_free = max(coordinator_free, time) + seconds
        coordinator_busy += seconds
        return coordinator_free

    pause = [FIRST_PAUSE] * workers
    for worker in range(workers):
        at(draw.random() * LONGEST_PAUSE, "look", worker)
    at(0, "make")
    now = 0.0
    while taken < jobs:
        now, _, what, which = heapq.heappop(events)
        if what == "make":
            if made < jobs and outstanding < times["jobs_at_once"]:
                made += 1
                outstanding += 1
                done = serve(coordinate(now, times["prepare_seconds"]), times["prepare_requests"])
                at(done, "made")
        elif what == "made":
            waiting += 1
            at(now, "make")
        elif what == "look":
            if waiting == 0:
                serve(now, times["look_requests"])
                at(now + pause[which], "look", which)
                pause[which] = min(2 * pause[which], LONGEST_PAUSE)
                continue
            waiting -= 1
            pause[which] = FIRST_PAUSE
            begun = serve(now, times["begin_requests"])
            seconds = job_seconds if job_seconds is not None else draw.choice(times["job_seconds"])
            at(begun + seconds, "performed", which)
        elif what == "performed":
            answered = serve(now, times["end_requests"])
            at(answered, "answered")
            at(answered, "look", which)
        else:
            coordinate(now, times["take_seconds"])
            taken += 1
            outstanding -= 1
            at(coordinator_free, "make")
    end = max(now, coordinator_free)
    return end, coordinator_busy / end, server_busy / end


def table(times, counts, job_seconds):
    """Rows for a job of this length, or as recorded."""
    length = job_seconds if job_seconds is not None else sum(times["job_seconds"]) / len(times["job_seconds"])
    rows = []
    alone = None
    for workers in counts:
        jobs = max(400, 8 * workers)
        seconds, coordinator, server = simulate(times, workers, jobs, job_seconds)
        rate = jobs / seconds
        alone = alone or rate
        rows.append((f"{length:.2f}", str(workers), f"{rate:.1f}", f"{rate / alone:.1f}", f"{rate / alone / workers:.0%}",
                     f"{coordinator:.0%}", f"{server:.0%}"))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("times", help="recorded times")
    parser.add_argument("--workers", default="1,2,4,10,30,100,300,1000")
    parser.add_argument("--seconds", default="recorded,2,30", help="duration of a job; recorded: drawn from the file")
    arguments = parser.parse_args()
    with open(arguments.times, encoding="utf-8") as file:
        times = json.load(file)
    counts = [int(text) for text in arguments.workers.split(",")]
    rows = [("s a job", "workers", "jobs/s", "times one", "efficiency", "coordinator", "server")]
    for text in arguments.seconds.split(","):
        rows += table(times, counts, None if text == "recorded" else float(text))
    for row in rows:
        print("| " + " | ".join(row) + " |")
        if row is rows[0]:
            print("|" + "---|" * len(row))
    bound = times["prepare_seconds"] + times["take_seconds"]
    requests = times["prepare_requests"] + times["begin_requests"] + times["end_requests"]
    print(f"\nat most {1 / bound:.0f} jobs/s of one coordinator, "
          f"{1 / (requests * times['server_request_seconds']):.0f} jobs/s of one server")


if __name__ == "__main__":
    main()
