# Headroom's front door. `make` prints the targets. AWS=1 talks to your AWS account; without it everything
# runs against the rehearsal, an AWS on this machine.

SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON   ?= $(firstword $(shell command -v python3.11 python3.12 python3))
VENV     ?= .venv
PY       := $(VENV)/bin/python
MODEL    ?= kokoro-82m
ENDPOINT ?= speech-kokoro-82m
VARIANT  ?= primary
OUT      ?= artifacts
ARGS     ?=
# Most tests wait for something; two at a time fit two cores. `PARALLEL=` runs them one by one.
PARALLEL ?= -n 2 --dist loadfile --no-loadscope-reorder

TARGET_ENDPOINT = --endpoint '$(ENDPOINT)' --variant '$(VARIANT)'

# AWS=0 and AWS=no mean no, as a person would think.
ifneq ($(filter-out 0 no false,$(AWS)),)
TF_DIR    ?= terraform
TF_READY  :=
TF_ARGS   :=
SLO_MS   ?= 3000
PEAK     ?= --peak-rps 10 --trough-rps 1
IN_ENV    :=
REHEARSED :=
DEPLOYED  :=
QMAX_ARGS :=
TTOTAL_ARGS :=
DEPLOY_ARGS :=
else
# A copy, so that what the rehearsal decides never meets what is deployed to the account.
TF_DIR    ?= $(OUT)/rehearsal/terraform
TF_READY  := terraform-copy
TF_ARGS    = --terraform-dir '$(TF_DIR)'
# A CPU thread speaks about one request a second: a longer promise than a GPU's, so that there is something to find.
SLO_MS   ?= 8000
PEAK     ?= --peak-rps 1 --trough-rps 0.2
IN_ENV    = eval "$$($(PY) -m rehearsal env)" &&
REHEARSED = rehearsal-up
DEPLOYED  = rehearsal-bare
QMAX_ARGS = $(REHEARSAL_LADDER)
TTOTAL_ARGS = $(REHEARSAL_PROBE)
DEPLOY_ARGS = $(REHEARSAL_ENV)
endif

# About five minutes on a CPU; the published method (8 rungs, 240 s hold, 60 s window) is the default everywhere else.
REHEARSAL_LADDER ?= --rungs 1,3,6,12 --hold-s 36 --measure-window-s 35 --idle-s 1
# Both instances share this machine's cores: "recovered" lies half way between no better and twice as good.
REHEARSAL_PROBE  ?= --reference probe --recovered-factor 1.5 --probe-concurrency 8 --hold-s 30
# One thread an instance, so that a second instance on this machine really adds capacity.
REHEARSAL_ENV    ?= --env THREADS=1

.PHONY: help
help: ## Show this list
	@awk 'BEGIN{FS=":.*## "} /^[a-z-]+:.*## /{printf "  \033[1m%-18s\033[0m %s\n",$$1,$$2} /^##@/{printf "\n%s\n",substr($$0,5)}' $(MAKEFILE_LIST) \
	 | { [ -t 1 ] && cat || sed 's/\x1b\[[0-9;]*m//g'; }
	@printf '\nVariables: AWS=1 ENDPOINT= VARIANT= MODEL= SLO_MS= PEAK="--peak-rps N --trough-rps N" OUT= ALL=1\n'
	@printf '           ARGS="any further flags of the command"; each can be exported instead\n'

##@ Set up and check

$(VENV)/.done: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

.PHONY: setup test test-all check clean
setup: $(VENV)/.done ## Create .venv with everything the rehearsal and the tests need

test: setup ## Run the test suite
	$(PY) -m pytest -q -m "not slow and not aws" $(PARALLEL) $(ARGS)

test-all: setup ## Run the slow tests too
	$(PY) -m pytest -q -m "not aws" $(PARALLEL) $(ARGS)

check: setup ## Lint, types, Terraform format and security analysis
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	@if command -v terraform >/dev/null; then terraform fmt -check -recursive terraform; else echo "terraform not installed: format not checked"; fi
	$(PY) -m scripts.terraform_docs --check
	$(MAKE) --no-print-directory tf-security

# Its own environment: its pins and ours cannot be met together.
CHECKOV_VERSION := 3.3.30
.venv-checkov/.done-$(CHECKOV_VERSION):
	$(PYTHON) -m venv .venv-checkov
	.venv-checkov/bin/python -m pip install -q --disable-pip-version-check checkov==$(CHECKOV_VERSION)
	@touch $@

.PHONY: tf-security
tf-security: .venv-checkov/.done-$(CHECKOV_VERSION) ## Static security analysis of the Terraform modules
	.venv-checkov/bin/checkov --directory terraform --config-file terraform/.checkov.yaml

clean: ## Remove what was measured here, the plan too, not what is deployed
	@case '$(OUT)' in /*|.|./|*..*) echo "OUT='$(OUT)' is not a folder of this repository: remove it by hand" >&2; exit 2;; esac
	rm -rf '$(OUT)' .pytest_cache .mypy_cache .ruff_cache

##@ Measure (AWS=1 for a real account)

.PHONY: qmax open-loop ttotal plan plan-article
qmax: setup $(REHEARSED) ## Measure Q_max of one instance
	$(IN_ENV) $(PY) -m loadtest.ladder $(TARGET_ENDPOINT) --model '$(MODEL)' --slo-ms '$(SLO_MS)' --out '$(OUT)' $(QMAX_ARGS) $(ARGS)

open-loop: setup $(REHEARSED) ## Measure the metric ratio under Poisson arrivals, which the plan then prefers
	$(IN_ENV) $(PY) -m loadtest.surge $(TARGET_ENDPOINT) --model '$(MODEL)' --slo-ms '$(SLO_MS)' --out '$(OUT)' --rates 0.5,0.7,0.85 $(ARGS)

ttotal: setup $(REHEARSED) ## Measure T_total by stage
	$(IN_ENV) $(PY) -m scripts.ttotal $(TARGET_ENDPOINT) --model '$(MODEL)' --out '$(OUT)' $(TTOTAL_ARGS) $(ARGS)

plan: setup $(TF_READY) ## Compute the plan from the newest measurements
	$(PY) -m planner plan --model '$(MODEL)' --artifacts '$(OUT)' --slo-ms '$(SLO_MS)' $(PEAK) --out '$(OUT)' --tfvars '$(TF_DIR)/plan.auto.tfvars' $(ARGS)

plan-article: setup ## Plan from the published measurements
	$(PY) -m planner plan --qmax examples/article/qmax.json --ttotal examples/article/ttotal.json --peak-rps 5000 --trough-rps 10 --out '$(OUT)/article' $(ARGS)

##@ Deploy and guard

.PHONY: deploy apply-plan destroy tf-plan tf-test drift validate validate-load thaw
deploy: setup $(DEPLOYED) $(TF_READY) ## Foundation, image, weights, endpoint
	$(IN_ENV) $(PY) -m scripts.deploy $(TARGET_ENDPOINT) --model '$(MODEL)' $(TF_ARGS) $(DEPLOY_ARGS) $(ARGS)

apply-plan: setup $(DEPLOYED) $(TF_READY) ## Create autoscaling from the plan
	$(IN_ENV) $(PY) -m scripts.apply_plan $(TARGET_ENDPOINT) $(TF_ARGS) $(ARGS)

destroy: setup $(DEPLOYED) $(TF_READY) ## Take it down (ALL=1 removes the weight cache and the registry too)
	$(IN_ENV) $(PY) -m scripts.destroy $(TARGET_ENDPOINT) $(if $(ALL),--all) $(TF_ARGS) $(ARGS)
	$(if $(REHEARSED),@echo "that was the rehearsal; an account's endpoint is taken down by: make destroy AWS=1")

tf-plan: setup $(DEPLOYED) $(TF_READY) ## Terraform plan as it would be applied
	$(IN_ENV) $(PY) -m scripts.deploy $(TARGET_ENDPOINT) --model '$(MODEL)' $(TF_ARGS) $(DEPLOY_ARGS) --plan-only $(ARGS)

tf-test: setup ## Terraform's own tests, offline
	$(PY) -m scripts.terraform test

drift: setup $(REHEARSED) $(TF_READY) ## Compare what is live with what was intended
	$(IN_ENV) $(PY) -m scripts.drift $(TARGET_ENDPOINT) --model '$(MODEL)' --artifacts '$(OUT)' $(TF_ARGS) $(ARGS)

validate: setup $(REHEARSED) $(TF_READY) ## Compare the deployed policy with the plan
	$(IN_ENV) $(PY) -m scripts.validate $(TARGET_ENDPOINT) --model '$(MODEL)' --artifacts '$(OUT)' $(TF_ARGS) $(ARGS)

validate-load: setup $(REHEARSED) $(TF_READY) ## Replay the surge the plan promises to survive
	$(IN_ENV) $(PY) -m scripts.validate_load $(TARGET_ENDPOINT) --model '$(MODEL)' --artifacts '$(OUT)' $(TF_ARGS) $(ARGS)

thaw: setup $(REHEARSED) ## Put back what an interrupted run left frozen
	$(IN_ENV) $(PY) -m scripts.thaw $(TARGET_ENDPOINT) $(ARGS)

##@ Rehearse without AWS

.PHONY: rehearsal-up rehearsal-bare rehearsal-down terraform-copy rehearse-article simulate-article report demo
rehearsal-up: setup ## Start the rehearsal with a ready endpoint
	@$(PY) -m rehearsal up --seed $(TARGET_ENDPOINT) $(REHEARSAL_ENV)

# Terraform creates the endpoint itself, so nothing is seeded.
rehearsal-bare: setup
	@$(PY) -m rehearsal up

terraform-copy:
	@mkdir -p '$(TF_DIR)' && cp -R terraform/*.tf terraform/modules '$(TF_DIR)'

rehearsal-down: setup ## Stop the rehearsal
	$(PY) -m rehearsal down

rehearse-article: setup ## Replay the published ml.g5.xlarge ladder in real time
	$(PY) -m bench.rehearse_article --out '$(OUT)/rehearse-article' $(ARGS)

simulate-article: setup ## Simulate scaling policies on the published measurements
	$(PY) -m planner simulate --qmax examples/article/qmax.json --ttotal examples/article/ttotal.json \
	  --gpu-saturated-pct 40 --cpu-saturated-pct 100 --name article --out '$(OUT)/article' \
	  --chart docs/img/simulate-article.svg --chart-policies headroom,drain $(ARGS)

report: setup ## One HTML file from whatever was measured
	$(PY) -m planner report --model '$(MODEL)' --artifacts '$(OUT)' --out '$(OUT)' $(ARGS)

demo: setup ## The whole chain in ten to fifteen minutes
	$(PY) -m scripts.demo $(TARGET_ENDPOINT) --model '$(MODEL)' --out '$(OUT)/demo' $(ARGS)

##@ Benchmarks

.PHONY: bench-harness bench-engine bench-peers bench-quality bench-container bench-schedulers bench-planner soak
bench-harness: setup ## How far one load generator can be trusted
	$(PY) -m bench.harness $(ARGS)

bench-engine: setup ## Engines side by side
	$(PY) -m bench.engine $(ARGS)

bench-peers: setup ## Our container beside other Kokoro servers, each from an environment given in ARGS
	$(PY) -m bench.peers $(ARGS)

bench-quality: setup ## Spectra and recognised words of our engine against upstream's model
	$(PY) -m bench.quality $(ARGS)

bench-container: setup ## Schedulers side by side
	$(PY) -m bench.container $(ARGS)

bench-schedulers: setup ## A ladder on paragraphs under each scheduler, in one chart
	$(PY) -m bench.schedulers --out '$(OUT)/schedulers' $(ARGS)

soak: setup ## The container's long runs: mixed requests, real speech too, a minute past the bound, 15 000 fuzzed messages
	$(PY) -m pytest -q -m slow tests/container/test_soak.py tests/container/test_fuzz.py $(ARGS)

bench-planner: setup ## Planner and simulator speed
	$(PY) -m bench.planner $(ARGS)
