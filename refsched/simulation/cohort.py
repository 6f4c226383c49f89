def is_cohort_rule(engine):
    return False
class Cohort:
    pass
