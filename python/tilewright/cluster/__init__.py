"""Builds and measurements on the workers of a Dask cluster.

| module | what it holds |
|---|---|
| `connection` | the client of a cluster, and who works there |
| `labels` | the labels by which a worker describes itself |
| `worker` | ``tilewright worker``: Dask's worker with labels and resources |
| `processors` | who of the workers of a host may use its processors now |
| `tasks` | what runs on a worker: build, measure, finals |
| `builds` | builds of a chunk of candidates on a worker |
| `stations` | the helper processes of a worker |
| `answers` | what a session checks in the answer of a task |
| `job` | a candidate that is built or measured, and the description of its program |
| `chunks` | how many candidates a task has |
| `submission` | gives chunks of candidates to Dask as tasks |
| `scheduler_plugin` | lets tasks fail when their worker is lost; runs in the scheduler |
| `losses` | which tasks were lost with a worker |
| `deadlines` | after how long a task is late |
| `builders` | which workers build |
| `lone` | tasks outside of a search |
| `references` | reference outputs: which workers compute them right |
| `pump` | the thread that advances the searches of a connection |
| `measurer` | what a session measures with |
"""
