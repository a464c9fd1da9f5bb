-- TPC-H Q22, global sales opportunity
-- set codes = '13', '31', '23', '29', '30', '18', '17'
with chosen as (
  select substring(c_phone, 1, 2) as cntrycode, c_acctbal, c_custkey
  from customer
  where substring(c_phone, 1, 2) in (${codes})
)
select cntrycode, count(*) as numcust, sum(c_acctbal) as totacctbal
from chosen
where c_acctbal > (select avg(c_acctbal) from chosen where c_acctbal > 0.00)
  and not exists (select 1 from orders where o_custkey = c_custkey)
group by cntrycode
order by cntrycode
