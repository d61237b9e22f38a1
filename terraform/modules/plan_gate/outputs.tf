output "faults" {
  description = "Why the plan cannot be deployed, each with its fix; empty when it can or when there is none"
  value       = local.faults
}

output "plan" {
  description = "The numbers to deploy; null without a plan and for a faulty one"
  value       = var.plan_json == null || length(local.faults) > 0 ? null : merge(local.number, { run_id = try(tostring(local.document.provenance.run_id), null) })

  # On an output, because such a check stops plan and apply but never a destroy.
  precondition {
    condition     = length(local.faults) == 0
    error_message = join("\n", local.faults)
  }
}
